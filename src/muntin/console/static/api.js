// Requests to the server of the console.

export async function ask(path) {
  return answerOf(await fetch(path, { headers: { accept: "application/json" } }));
}

export async function tell(path, data) {
  return answerOf(await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(data),
  }));
}

async function answerOf(response) {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) return response.json();
  return { errors: [{ fact: (await response.text()).trim() || `status ${response.status}`, hint: "" }] };
}

// One stream of events at a time; another query opens another one.
export class Events {
  constructor(handlers) {
    this.handlers = handlers;
    this.query = undefined;
  }

  open(query) {
    if (query === this.query && this.source) return;
    this.source?.close();
    clearTimeout(this.retry);
    this.query = query;
    const path = query === null ? "/api/events" : `/api/events?query=${encodeURIComponent(query)}`;
    const source = new EventSource(path);
    this.source = source;
    for (const kind of ["history", "snapshot", "results", "obstacle"]) {
      source.addEventListener(kind, (event) => this.handlers[kind](JSON.parse(event.data)));
    }
    source.onopen = () => this.handlers.connected(true);
    source.onerror = () => {
      this.handlers.connected(false);
      if (source.readyState !== EventSource.CLOSED || this.source !== source) return;
      this.retry = setTimeout(() => {
        this.source = null;
        this.open(this.query);
      }, 3000);
    };
  }
}
