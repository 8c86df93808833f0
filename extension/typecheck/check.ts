// The component that checks types. Its top level runs once, when it is built: its image holds the compiler, and all
// declarations parsed and bound.
import { extension } from "stile";
import * as ts from "./compiler.js";
import declarations from "./declarations.json";

const esNext = 99; // ScriptTarget.ESNext, ModuleKind.ESNext

const options = {
  target: esNext,
  module: esNext,
  moduleResolution: 100, // Bundler
  jsx: 1, // preserve
  strict: true,
  // What a tool may assume of what it catches is not what goes wrong in it.
  useUnknownInCatchVariables: false,
  allowJs: true,
  allowImportingTsExtensions: true,
  resolveJsonModule: true,
  skipLibCheck: true,
  noLib: true,
  noEmit: true,
  types: [],
};

const own = "/extension/"; // the folder of the extension's files

function parse(name: string, text: string) {
  return ts.createSourceFile(name, text, { languageVersion: esNext, jsDocParsingMode: 1 /* none */ }, true);
}

const known = new Map<string, any>();
for (const [name, text] of Object.entries(declarations)) {
  const file = parse(name, text as string);
  ts.bindSourceFile(file, options);
  known.set(name, file);
}

/** The file that a name leads to. What there is none for, packages above all, has the type any. */
function resolve(name: string, from: string, has: (file: string) => boolean) {
  if (name === "stile") return "/stile/index.d.ts";
  if (!/^\.\.?(\/|$)/.test(name)) return undefined;
  const parts = from.split("/").slice(0, -1);
  for (const part of name.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  const path = parts.join("/");
  const typed = path.replace(/\.([mc]?)js(x?)$/, ".$1ts$2");
  const endings = [".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json"];
  return [typed, path, ...endings.map((e) => path + e), ...endings.map((e) => `${path}/index${e}`)].find(has);
}

function check(files: Record<string, string>, entry: string, env: string) {
  const texts = new Map(Object.entries(files).map(([name, text]) => [own + name, text]));
  texts.set("/stile/env.d.ts", env);
  const sources = new Map<string, any>(known);
  const has = (name: string) => texts.has(name) || known.has(name);
  const host = {
    fileExists: has,
    readFile: (name: string) => texts.get(name),
    getSourceFile(name: string) {
      if (!sources.has(name) && texts.has(name)) sources.set(name, parse(name, texts.get(name)!));
      return sources.get(name);
    },
    resolveModuleNameLiterals: (literals: { text: string }[], from: string) =>
      literals.map(({ text }) => {
        const file = resolve(text, from, has);
        const extension = file && /(\.d)?\.\w+$/.exec(file)![0];
        return { resolvedModule: file && { resolvedFileName: file, extension } };
      }),
    getDefaultLibFileName: () => "",
    getCurrentDirectory: () => "/",
    getCanonicalFileName: (name: string) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
    writeFile() {},
  };
  const ambient = [...texts.keys()].filter((name) => name.endsWith(".d.ts"));
  const program = ts.createProgram({ rootNames: [...known.keys(), ...ambient, own + entry], options, host });
  return program
    .getSourceFiles()
    .filter((file: any) => file.fileName.startsWith(own))
    .flatMap((file: any) => {
      const wrong = program.getSyntacticDiagnostics(file); // what is wrong besides may only follow from it
      return wrong.length ? wrong : program.getSemanticDiagnostics(file);
    })
    .filter(matters)
    .map(problem);
}

/**
 * Whether something goes wrong. From 7000 to 7999 are those about what has the type any because nothing says more. "Cannot
 * find", at the text of an import, is about a module without types; one that is not there at all the bundler has reported. Code that asks
 * with typeof whether there is a name knows that there may be none.
 */
function matters({ category, code, file, start, messageText }: any) {
  const missing = /^["'`]/.test(file.text.slice(start, start + 1)) && /^Cannot find/.test(ts.flattenDiagnosticMessageText(messageText, ""));
  const name = /^Cannot find name '(\w+)'/.exec(ts.flattenDiagnosticMessageText(messageText, ""))?.[1];
  const asked = name !== undefined && new RegExp(`\\btypeof\\s+${name}\\b`).test(file.text);
  return category === 1 /* error */ && !(code >= 7000 && code < 8000) && !missing && !asked;
}

function problem({ file, start, code, messageText, relatedInformation }: any) {
  const { line, character } = ts.getLineAndCharacterOfPosition(file, start);
  const from = ts.getPositionOfLineAndCharacter(file, line, 0);
  const related: number[] = (relatedInformation ?? []).map((r: any) => r.code);
  return {
    file: file.fileName.slice(own.length),
    line: line + 1,
    column: [...file.text.slice(from, start)].length + 1,
    source: file.text.slice(from).split(/\r?\n/, 1)[0].slice(0, 1000),
    code,
    text: ts.flattenDiagnosticMessageText(messageText, "\n").slice(0, 2000),
    await: related.includes(ts.Diagnostics.Did_you_forget_to_use_await.code),
  };
}

export default extension({
  tools: {
    check: {
      description: "Check the types of the files of an extension",
      run: ({ files, entry, env }: any) => check(files, entry, env),
    },
  },
});
