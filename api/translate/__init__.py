"""Between the API's JSON and objects or rows, one resource a file. Pure: nothing here reads or writes."""
