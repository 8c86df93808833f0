/** The binding of a `stile:capability/random` interface. `Math.random` and `crypto` use the first one. */
export interface Random {
  u64(): bigint;
  bytes(length: number): Uint8Array<ArrayBuffer>;
}
