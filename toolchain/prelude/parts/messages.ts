// MessageChannel, and the events of ports.
import { kinds, transferring } from "../clone";
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
}

// Only this module makes ports.
const key = Symbol("MessagePort");
let entangle: (a: MessagePort, b: MessagePort) => void;
let move: (port: MessagePort) => MessagePort;

class MessagePort extends EventTarget {
  #other: MessagePort | undefined;
  #started = false;
  #moved = false;
  #left: [unknown, MessagePort[]][] = [];
  #onmessage: ((event: any) => void) | null = null;
  #onmessageerror: ((event: any) => void) | null = null;
  constructor(made?: symbol) {
    super();
    if (made !== key) throw new TypeError("a MessagePort is made by a MessageChannel");
  }
  postMessage(message: unknown, options?: any): void {
    required(arguments.length, 1, "postMessage");
    const transfer: object[] = [...(options?.transfer ?? (options?.[Symbol.iterator] ? options : []))];
    if (transfer.includes(this)) throw new DOMException("a port cannot be sent through itself", "DataCloneError");
    const other = this.#other;
    const [data, moved] = transferring(message, transfer);
    if (!other || transfer.includes(other)) return; // a port that was sent to itself is lost
    other.#left.push([data, moved.filter((object) => object instanceof MessagePort)]);
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
      const [data, ports] = this.#left.shift() ?? [];
      if (ports) this.dispatchEvent(new MessageEvent("message", { data, ports }));
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
  static {
    entangle = (a, b) => {
      a.#other = b;
      b.#other = a;
    };
    move = (port) => {
      if (port.#moved) throw new DOMException("the port was transferred already", "DataCloneError");
      const to = new MessagePort(key);
      if (port.#other) entangle(to, port.#other);
      to.#left = port.#left;
      port.#moved = true;
      port.#other = undefined;
      port.#left = [];
      return to;
    };
  }
}

class MessageChannel {
  readonly port1 = new MessagePort(key);
  readonly port2 = new MessagePort(key);
  constructor() {
    entangle(this.port1, this.port2);
  }
}
kinds.push({ is: (value) => value instanceof MessagePort, move });
install({ MessageChannel, MessageEvent, MessagePort });
