/** The binding of a `stile:capability/blob` interface: a store for content that is too large to send or write at once. */
export interface Blobs {
  /** Creates a Blob whose bytes stay on the host. */
  createBlob(parts: Iterable<BlobPart>, options?: { type?: string }): Promise<Blob>;
}
