// A browser starts no worker for a page that was opened as a file. There, and nowhere else, a hidden
// frame takes its place, so that the search works without a server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const waiting = [];
      const deliver = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      this.postMessage = (data) => (waiting ? waiting.push(data) : deliver(data));
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...names) =>
        names.reduce((before, name) => before.then(() => load(new URL(name, address).href)), Promise.resolve());
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: source, onload: done, onerror: failed });
          inside.document.body.append(script);
        });
      this.terminate = () => frame.remove();
      load(new URL(address, document.baseURI).href).then(() => {
        this.postMessage = deliver;
        waiting.splice(0).forEach(deliver);
      });
    }
  };
}
