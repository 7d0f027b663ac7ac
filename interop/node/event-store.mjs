// Keeps the events of one session in order, for clients that come back to a stream that was closed.
export class EventStore {
  #events = [];

  async storeEvent(streamId, message) {
    this.#events.push({ streamId, message });
    return String(this.#events.length - 1);
  }

  async getStreamIdForEventId(eventId) {
    return this.#events[Number(eventId)]?.streamId;
  }

  async replayEventsAfter(lastEventId, { send }) {
    const streamId = await this.getStreamIdForEventId(lastEventId);
    const after = [...this.#events.entries()].slice(Number(lastEventId) + 1);
    for (const [eventId, event] of after) {
      if (event.streamId === streamId) await send(String(eventId), event.message);
    }
    return streamId;
  }
}
