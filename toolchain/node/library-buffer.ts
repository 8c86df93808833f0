// What the libraries of node's modules get as their module buffer.
import buffer from "./buffer";
export const d = () => buffer;
