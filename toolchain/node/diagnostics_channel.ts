// node:diagnostics_channel, without stores: nothing carries one across await.
type Subscriber = (message: unknown, name: string | symbol) => void;

const channels = new Map<string | symbol, Channel>();

export class Channel {
  #subscribers: Subscriber[] = [];
  constructor(readonly name: string | symbol) {}
  get hasSubscribers(): boolean {
    return this.#subscribers.length > 0;
  }
  subscribe(subscriber: Subscriber): void {
    if (typeof subscriber !== "function") throw Object.assign(new TypeError('The "subscription" argument must be of type function.'), { code: "ERR_INVALID_ARG_TYPE" });
    this.#subscribers = [...this.#subscribers, subscriber];
  }
  unsubscribe(subscriber: Subscriber): boolean {
    const at = this.#subscribers.indexOf(subscriber);
    this.#subscribers = this.#subscribers.filter((_, i) => i !== at);
    return at >= 0;
  }
  /** Subscribers do not fail who publishes: what they throw is reported as an error that nobody caught. */
  publish(message: unknown): void {
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(message, this.name);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
  bindStore(): void {}
  unbindStore(): boolean {
    return false;
  }
  runStores(message: unknown, run: (...args: any[]) => unknown, self?: unknown, ...args: unknown[]): unknown {
    this.publish(message);
    return Reflect.apply(run, self, args);
  }
}
export function channel(name: string | symbol): Channel {
  let found = channels.get(name);
  if (!found) channels.set(name, (found = new Channel(name)));
  return found;
}
export const hasSubscribers = (name: string | symbol): boolean => channels.get(name)?.hasSubscribers ?? false;
export const subscribe = (name: string | symbol, subscriber: Subscriber): void => channel(name).subscribe(subscriber);
export const unsubscribe = (name: string | symbol, subscriber: Subscriber): boolean => channel(name).unsubscribe(subscriber);

const events = ["start", "end", "asyncStart", "asyncEnd", "error"] as const;
type Events<T> = { [K in (typeof events)[number]]: T };

export class TracingChannel {
  declare start: Channel;
  declare end: Channel;
  declare asyncStart: Channel;
  declare asyncEnd: Channel;
  declare error: Channel;
  constructor(of: string | Events<Channel>) {
    for (const event of events) this[event] = typeof of === "string" ? channel(`tracing:${of}:${event}`) : of[event];
  }
  get hasSubscribers(): boolean {
    return events.some((event) => this[event].hasSubscribers);
  }
  subscribe(subscribers: Partial<Events<Subscriber>>): void {
    for (const event of events) if (subscribers[event]) this[event].subscribe(subscribers[event]);
  }
  unsubscribe(subscribers: Partial<Events<Subscriber>>): boolean {
    return events.map((event) => !subscribers[event] || this[event].unsubscribe(subscribers[event])).every(Boolean);
  }
  #failed(context: any, error: unknown): void {
    context.error = error;
    this.error.publish(context);
  }
  traceSync(run: (...args: any[]) => unknown, context: any = {}, self?: unknown, ...args: unknown[]): unknown {
    this.start.publish(context);
    try {
      return (context.result = Reflect.apply(run, self, args));
    } catch (error) {
      this.#failed(context, error);
      throw error;
    } finally {
      this.end.publish(context);
    }
  }
  tracePromise(run: (...args: any[]) => any, context: any = {}, self?: unknown, ...args: unknown[]): Promise<unknown> {
    this.start.publish(context);
    const settled = (key: "result" | "error", value: unknown) => {
      if (key === "error") this.#failed(context, value);
      else context.result = value;
      this.asyncStart.publish(context);
      this.asyncEnd.publish(context);
    };
    try {
      return Promise.resolve(Reflect.apply(run, self, args)).then(
        (result) => {
          settled("result", result);
          return result;
        },
        (error) => {
          settled("error", error);
          throw error;
        },
      );
    } catch (error) {
      this.#failed(context, error);
      throw error;
    } finally {
      this.end.publish(context);
    }
  }
  traceCallback(run: (...args: any[]) => unknown, position = -1, context: any = {}, self?: unknown, ...args: any[]): unknown {
    const at = position < 0 ? args.length + position : position;
    const callback = args[at];
    if (typeof callback !== "function") throw Object.assign(new TypeError('The "callback" argument must be of type function.'), { code: "ERR_INVALID_ARG_TYPE" });
    const trace = this;
    args[at] = function (this: unknown, error: unknown, result: unknown, ...rest: unknown[]) {
      if (error) trace.#failed(context, error);
      else context.result = result;
      trace.asyncStart.publish(context);
      try {
        return Reflect.apply(callback, this, [error, result, ...rest]);
      } finally {
        trace.asyncEnd.publish(context);
      }
    };
    this.start.publish(context);
    try {
      return Reflect.apply(run, self, args);
    } catch (error) {
      this.#failed(context, error);
      throw error;
    } finally {
      this.end.publish(context);
    }
  }
}
export const tracingChannel = (of: string | Events<Channel>): TracingChannel => new TracingChannel(of);
export default { Channel, channel, hasSubscribers, subscribe, unsubscribe, tracingChannel, TracingChannel };
