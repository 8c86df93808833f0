// Event and EventTarget.
import { dictionary, required } from "./dictionary";
import { report } from "./failure";

interface Init {
  bubbles?: boolean;
  cancelable?: boolean;
  composed?: boolean;
}
type Listener = ((event: Event) => void) | { handleEvent(event: Event): void };
interface Options {
  once?: boolean;
  signal?: EventTarget & { aborted: boolean };
  capture?: boolean;
  passive?: boolean;
}
interface Entry {
  listener: Listener;
  once: boolean;
  passive: boolean;
  capture: boolean;
  removed: boolean;
}

// Phases of an event. There is one target and no tree, so two of them never occur.
const phases = { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 };

let dispatch: (event: Event, target: EventTarget, entries: Entry[], trusted: boolean) => boolean;

/** Dispatches an event of ours, not of the author. */
export let fire: (target: EventTarget, type: string) => void;

export class Event {
  readonly type: string;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly timeStamp = 0;
  #trusted = false;
  #target: EventTarget | null = null;
  #dispatching = false;
  #passive = false;
  #prevented = false;
  #stopped = false;
  #cancelled = false;

  constructor(type: string, options?: Init | null) {
    required(arguments.length, 1, "Event");
    const init = dictionary(options, "Event");
    this.type = `${type}`;
    this.bubbles = !!init.bubbles;
    this.cancelable = !!init.cancelable;
    this.composed = !!init.composed;
  }
  get isTrusted(): boolean {
    return this.#trusted;
  }
  get target(): EventTarget | null {
    return this.#target;
  }
  get srcElement(): EventTarget | null {
    return this.#target;
  }
  get currentTarget(): EventTarget | null {
    return this.#dispatching ? this.#target : null;
  }
  get eventPhase(): number {
    return this.#dispatching ? phases.AT_TARGET : phases.NONE;
  }
  composedPath(): EventTarget[] {
    return this.#dispatching ? [this.#target!] : [];
  }
  get defaultPrevented(): boolean {
    return this.#prevented;
  }
  preventDefault(): void {
    if (this.cancelable && !this.#passive) this.#prevented = true;
  }
  get returnValue(): boolean {
    return !this.#prevented;
  }
  set returnValue(value: boolean) {
    if (!value) this.preventDefault();
  }
  // There is one target and no tree, so this only has an effect on an event that was not dispatched yet.
  stopPropagation(): void {
    this.#cancelled = true;
  }
  get cancelBubble(): boolean {
    return this.#cancelled;
  }
  set cancelBubble(value: boolean) {
    if (value) this.#cancelled = true;
  }
  stopImmediatePropagation(): void {
    this.#cancelled = this.#stopped = true;
  }

  static {
    for (const holder of [Event, Event.prototype]) for (const [name, value] of Object.entries(phases)) Object.defineProperty(holder, name, { value, enumerable: true });
    dispatch = (event, target, entries, trusted) => event.#dispatch(target, entries, trusted);
  }
  #dispatch(target: EventTarget, entries: Entry[], trusted: boolean): boolean {
    if (this.#dispatching) throw new DOMException("the event is being dispatched already", "InvalidStateError");
    this.#trusted = trusted;
    this.#target = target;
    this.#dispatching = true;
    for (const entry of this.#cancelled ? [] : entries) {
      if (this.#stopped) break;
      if (entry.removed) continue;
      if (entry.once) target.removeEventListener(this.type, entry.listener, entry);
      this.#passive = entry.passive;
      try {
        if (typeof entry.listener === "function") entry.listener.call(target, this);
        else entry.listener.handleEvent(this);
      } catch (error) {
        report(error);
      }
    }
    this.#dispatching = this.#passive = false;
    this.#stopped = this.#cancelled = false;
    return !this.#prevented;
  }
}

export class CustomEvent extends Event {
  readonly detail: unknown;
  constructor(type: string, options?: (Init & { detail?: unknown }) | null) {
    required(arguments.length, 1, "CustomEvent");
    super(type, options);
    const { detail = null } = options ?? {};
    this.detail = detail;
  }
}

export class EventTarget {
  #listeners = new Map<string, Entry[]>();

  addEventListener(type: string, listener: Listener | null, options?: boolean | Options | null): void {
    const { once = false, signal, capture = false, passive = false } = dictionary(typeof options === "boolean" ? { capture: options } : options, "addEventListener");
    if (signal !== undefined && !(signal instanceof EventTarget && "aborted" in signal))
      throw new TypeError("addEventListener: signal is an AbortSignal");
    if (!listener || signal?.aborted) return;
    const entries = this.#listeners.get(type) ?? [];
    if (entries.some((entry) => entry.listener === listener && entry.capture === !!capture)) return;
    this.#listeners.set(type, [...entries, { listener, once: !!once, capture: !!capture, passive: !!passive, removed: false }]);
    signal?.addEventListener("abort", () => this.removeEventListener(type, listener, { capture }), { once: true });
  }
  removeEventListener(type: string, listener: Listener | null, options?: boolean | { capture?: boolean } | null): void {
    const capture = typeof options === "boolean" ? options : !!dictionary(options, "removeEventListener").capture;
    const entries = this.#listeners.get(type);
    const found = entries?.find((entry) => entry.listener === listener && entry.capture === capture);
    if (!entries || !found) return;
    found.removed = true;
    this.#listeners.set(type, entries.filter((entry) => entry !== found));
  }
  dispatchEvent(event: Event): boolean {
    return dispatch(event, this, this.#listeners.get(event.type) ?? [], false);
  }
  static {
    fire = (target, type) => dispatch(new Event(type), target, target.#listeners.get(type) ?? [], true);
  }
}
