// What the libraries of node's modules get as their process.
import process from "./process";
export { process as p };
