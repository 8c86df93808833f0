// node:tty: there is no terminal.
export const isatty = () => false;
export default { isatty };
