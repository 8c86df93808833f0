// node:util/types.
const tag = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);
const typed = Object.getPrototypeOf(Uint8Array.prototype);
const kindOf = Object.getOwnPropertyDescriptor(typed, Symbol.toStringTag)!.get!;
const view = (name: string) => (value: unknown) => kindOf.call(value) === name;

/** Whether an object has the slots of a class, by a getter or method that requires these. */
function has(probe: () => Function, ...args: unknown[]): (value: unknown) => boolean {
  return (value) => {
    if (typeof value !== "object" || value === null) return false;
    try {
      probe().call(value, ...args);
      return true;
    } catch {
      return false;
    }
  };
}
const getter = (prototype: object, name: string) => () => Object.getOwnPropertyDescriptor(prototype, name)!.get!;
const boxed = (prototype: object) => has(() => (prototype as any).valueOf);

export const isArrayBuffer = has(getter(ArrayBuffer.prototype, "byteLength"));
export const isSharedArrayBuffer = (_: unknown) => false;
export const isAnyArrayBuffer = isArrayBuffer;
export const isArrayBufferView = (value: unknown) => ArrayBuffer.isView(value);
export const isDataView = has(getter(DataView.prototype, "byteLength"));
export const isTypedArray = (value: unknown) => kindOf.call(value) !== undefined;
export const isUint8Array = view("Uint8Array");
export const isUint8ClampedArray = view("Uint8ClampedArray");
export const isUint16Array = view("Uint16Array");
export const isUint32Array = view("Uint32Array");
export const isInt8Array = view("Int8Array");
export const isInt16Array = view("Int16Array");
export const isInt32Array = view("Int32Array");
export const isFloat32Array = view("Float32Array");
export const isFloat64Array = view("Float64Array");
export const isBigInt64Array = view("BigInt64Array");
export const isBigUint64Array = view("BigUint64Array");
export const isMap = has(getter(Map.prototype, "size"));
export const isSet = has(getter(Set.prototype, "size"));
export const isWeakMap = has(() => WeakMap.prototype.has, {});
export const isWeakSet = has(() => WeakSet.prototype.has, {});
export const isDate = has(() => Date.prototype.getTime);
export const isRegExp = (value: any) => typeof value === "object" && value !== null && tag(value) === "RegExp";
export const isPromise = (value: unknown) => value instanceof Promise;
export const isNativeError = (value: unknown) => Error.isError(value);
export const isBooleanObject = boxed(Boolean.prototype);
export const isNumberObject = boxed(Number.prototype);
export const isStringObject = boxed(String.prototype);
export const isSymbolObject = boxed(Symbol.prototype);
export const isBigIntObject = boxed(BigInt.prototype);
export const isBoxedPrimitive = (value: unknown) => [isBooleanObject, isNumberObject, isStringObject, isSymbolObject, isBigIntObject].some((is) => is(value));
export const isAsyncFunction = (value: unknown) => typeof value === "function" && tag(value).startsWith("Async");
export const isGeneratorFunction = (value: unknown) => typeof value === "function" && tag(value).endsWith("GeneratorFunction");
export const isGeneratorObject = (value: unknown) => tag(value) === "Generator" || tag(value) === "AsyncGenerator";
export const isArgumentsObject = (value: unknown) => tag(value) === "Arguments";
export const isMapIterator = (value: unknown) => tag(value) === "Map Iterator";
export const isSetIterator = (value: unknown) => tag(value) === "Set Iterator";
export const isModuleNamespaceObject = (value: unknown) => tag(value) === "Module";
export const isProxy = (_: unknown) => false;
export const isExternal = (_: unknown) => false;
export default {
  isArrayBuffer, isSharedArrayBuffer, isAnyArrayBuffer, isArrayBufferView, isDataView, isTypedArray, isUint8Array, isUint8ClampedArray, isUint16Array, isUint32Array, isInt8Array,
  isInt16Array, isInt32Array, isFloat32Array, isFloat64Array, isBigInt64Array, isBigUint64Array, isMap, isSet, isWeakMap, isWeakSet, isDate, isRegExp, isPromise, isNativeError,
  isBooleanObject, isNumberObject, isStringObject, isSymbolObject, isBigIntObject, isBoxedPrimitive, isAsyncFunction, isGeneratorFunction, isGeneratorObject, isArgumentsObject,
  isMapIterator, isSetIterator, isModuleNamespaceObject, isProxy, isExternal,
};
