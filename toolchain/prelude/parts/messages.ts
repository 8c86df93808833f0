// MessageChannel, and the events of ports.
import { dictionary, required } from "../dictionary";
import { install } from "../global";
import { task } from "../tasks";

class MessageEvent extends Event {
  readonly data: unknown;
  readonly origin: string;
  readonly lastEventId: string;
  readonly source: unknown;
  readonly ports: readonly MessagePort[];
  constructor(type: string, options?: any) {
    required(arguments.length, 1, "MessageEvent");
    super(type, options);
    const { data = null, origin = "", lastEventId = "", source = null, ports = [] } = dictionary(options as any, "MessageEvent") as any;
    this.data = data;
    this.origin = `${origin}`;
    this.lastEventId = `${lastEventId}`;
    this.source = source;
    this.ports = Object.freeze([...ports]);
  }
  get [Symbol.toStringTag](): string {
    return "MessageEvent";
  }
}

// Only this module makes ports.
const key = Symbol("MessagePort");
let entangle: (a: MessagePort, b: MessagePort) => void;

class MessagePort extends EventTarget {
  #other: MessagePort | undefined;
  #started = false;
  #left: unknown[] = [];
  #onmessage: ((event: any) => void) | null = null;
  #onmessageerror: ((event: any) => void) | null = null;
  constructor(made?: symbol) {
    super();
    if (made !== key) throw new TypeError("a MessagePort is made by a MessageChannel");
  }
  postMessage(message: unknown, options?: any): void {
    required(arguments.length, 1, "postMessage");
    const transfer = [...(options?.transfer ?? (options?.[Symbol.iterator] ? options : []))];
    if (transfer.includes(this)) throw new DOMException("a port cannot be sent through itself", "DataCloneError");
    const data = structuredClone(message, { transfer });
    const other = this.#other;
    if (!other) return;
    other.#left.push(data);
    if (other.#started) other.#deliver();
  }
  start(): void {
    if (this.#started) return;
    this.#started = true;
    for (let i = this.#left.length; i > 0; i--) this.#deliver();
  }
  close(): void {
    const other = this.#other;
    this.#other = undefined;
    if (other) other.#other = undefined;
  }
  #deliver(): void {
    task("postMessage", () => {
      if (this.#left.length) this.dispatchEvent(new MessageEvent("message", { data: this.#left.shift() }));
    });
  }
  get onmessage() {
    return this.#onmessage;
  }
  set onmessage(listener: ((event: any) => void) | null) {
    this.#onmessage = this.#replace("message", this.#onmessage, listener);
    this.start();
  }
  get onmessageerror() {
    return this.#onmessageerror;
  }
  set onmessageerror(listener: ((event: any) => void) | null) {
    this.#onmessageerror = this.#replace("messageerror", this.#onmessageerror, listener);
  }
  #replace(type: string, old: ((event: any) => void) | null, listener: ((event: any) => void) | null) {
    this.removeEventListener(type, old);
    const next = typeof listener === "function" ? listener : null;
    this.addEventListener(type, next);
    return next;
  }
  // Of Node.js, where a port keeps a process alive.
  ref(): void {}
  unref(): void {}
  get [Symbol.toStringTag](): string {
    return "MessagePort";
  }
  static {
    entangle = (a, b) => {
      a.#other = b;
      b.#other = a;
    };
  }
}

class MessageChannel {
  readonly port1 = new MessagePort(key);
  readonly port2 = new MessagePort(key);
  constructor() {
    entangle(this.port1, this.port2);
  }
  get [Symbol.toStringTag](): string {
    return "MessageChannel";
  }
}
install({ MessageChannel, MessageEvent, MessagePort });
