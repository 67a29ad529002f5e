"""Export of ended runs and builds as traces, by OTLP over HTTP."""
