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
  esModuleInterop: true,
  allowImportingTsExtensions: true,
  resolveJsonModule: true,
  skipLibCheck: true,
  noLib: true,
  noEmit: true,
  types: [],
};

const own = "/extension/"; // the folder of the extension's files

function parse(name: string, text: string) {
  return ts.createSourceFile(name, text, { languageVersion: esNext, jsDocParsingMode: 1 /* none */ }, false); // bindSourceFile sets parents
}

const known = new Map<string, any>();
for (const [name, text] of Object.entries(declarations)) {
  const file = parse(name, text as string);
  ts.bindSourceFile(file, options);
  known.set(name, file);
}

/** Declarations of packages by path, and where each import in them leads; imports of the extension's files are those of "". */
interface Packages {
  files: Record<string, string>;
  links: Record<string, Record<string, string>>;
}

const inPackages = "/node_modules/";

/** The file that a name leads to. What there is none for has the type any. */
function resolve(name: string, from: string, has: (file: string) => boolean, links: Packages["links"]) {
  if (name === "stile") return "/stile/index.d.ts";
  const packaged = from.startsWith(inPackages);
  if (packaged || !/^\.\.?(\/|$)/.test(name)) {
    const of = links[packaged ? from.slice(1) : ""];
    return of && Object.hasOwn(of, name) ? `/${of[name]}` : undefined;
  }
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

function check(files: Record<string, string>, entry: string, env: string, packages: Packages): object[] {
  const links = packages.links[""] ?? {};
  const { program, found } = diagnose(files, entry, env, packages);
  if (!found.length || !Object.keys(links).length) return found.map(problem);
  const rest = whole(packages, incomplete(program));
  if (rest) return check(files, entry, env, rest);
  const without = diagnose(files, entry, env, none).found;
  const known = new Set(without.map(({ file, start, code }) => `${code} ${start} ${file.fileName}`));
  return found.filter((d) => known.has(`${d.code} ${d.start} ${d.file.fileName}`) || sure(d, program.getTypeChecker(), links)).map(problem);
}

const none: Packages = { files: {}, links: {} };

const basic = String.raw`(?:string|number|boolean|bigint|symbol|true|false|-?\d[\d.]*|"[^"]*")`;
const basics = new RegExp(`^(?:Argument of type|Type) '${basic}' is not assignable to (?:parameter of )?type '${basic}(?: \\| ${basic})*'\\.$`);

/**
 * Whether what is found only with the types of packages goes wrong when the code runs. They say much of code that works: that something may
 * be null, or unknown, or is another part of a union. What counts are exports and methods that do not exist, names that are almost those of
 * properties, arguments that are missing, and a text for a number or the like.
 */
function sure({ file, start, length, code, messageText }: any, checker: any, links: Record<string, string>): boolean {
  const text: string = ts.flattenDiagnosticMessageText(messageText, "\n");
  const [, wanted, got] = /^Expected (?:at least )?(\d+)(?:-\d+)? arguments?, but got (\d+)/.exec(text) ?? [];
  switch (code) {
    case 2305: // no exported member
    case 2614:
    case 2724: {
      const module = /'"(.*?)"'/.exec(text)?.[1] ?? "";
      return module in links && !links[module].includes("/@types/");
    }
    case 2339: // no such property
    case 2551: {
      let at = file;
      for (let next = at; next; ) {
        at = next;
        next = undefined;
        ts.forEachChild(at, (child: any) => void (child.pos <= start && start + length <= child.end && (next = child)));
      }
      const access = at.parent;
      if (access?.name !== at || !access.expression) return false;
      const name = file.text.slice(start, start + length);
      const called = access.parent.expression === access && access.parent.arguments && !access.parent.questionDotToken;
      // Code that asks for it knows that there may be none. What a type extends may be of Node.js, and there in part.
      const asked = new RegExp(`\\.${name}\\b(?!\\s*\\()|["'\`]${name}["'\`]`).test(file.text);
      const type = checker.getTypeAtLocation(access.expression);
      const declared = type.symbol?.declarations ?? [];
      const whole = declared.every((d: any) => !d.heritageClauses);
      return (code === 2551 || (called && !asked && whole)) && !type.types && declared.length > 0 && declared.every((d: any) => ts.getSourceFileOfNode(d).fileName.startsWith(inPackages));
    }
    case 2554: // too few arguments
    case 2555:
      return Number(got) < Number(wanted);
    case 2561: // a property of an object, with another name
      return true;
    case 2322:
    case 2345:
      return basics.test(text);
  }
  return false;
}

function diagnose(files: Record<string, string>, entry: string, env: string, packages: Packages): { program: any; found: any[] } {
  const texts = new Map(Object.entries(files).map(([name, text]) => [own + name, text]));
  for (const [name, text] of Object.entries(packages.files)) texts.set(`/${name}`, text);
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
        const file = resolve(text, from, has, packages.links);
        const extension = file && /(\.d)?\.\w+$/.exec(file)![0];
        return { resolvedModule: file && { resolvedFileName: file, extension, isExternalLibraryImport: file.startsWith(inPackages) } };
      }),
    getDefaultLibFileName: () => "",
    getCurrentDirectory: () => "/",
    getCanonicalFileName: (name: string) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
    writeFile() {},
  };
  const ambient = [...texts.keys()].filter((name) => name.endsWith(".d.ts") && !name.startsWith(inPackages));
  const program = ts.createProgram({ rootNames: [...known.keys(), ...ambient, own + entry], options, host });
  const found = program
    .getSourceFiles()
    .filter((file: any) => file.fileName.startsWith(own))
    .flatMap((file: any) => {
      const wrong = program.getSyntacticDiagnostics(file); // what is wrong besides may only follow from it
      return wrong.length ? wrong : program.getSemanticDiagnostics(file);
    })
    .filter(matters);
  return { program, found };
}

/**
 * The files of packages with an interface that extends what is not there, such as a class of Node's. What it has of that is not known, so
 * nothing can be said of its use. The compiler itself takes a class that extends such a thing for any. What has options of Intl cannot work here
 * anyway, and does not count: date-fns has one function of this kind among hundreds.
 */
function incomplete(program: any): Set<string> {
  const checker = program.getTypeChecker();
  const found = new Set<string>();
  for (const file of program.getSourceFiles()) {
    if (!file.fileName.startsWith(inPackages)) continue;
    const intl = (type: any) => /^\s*Intl\./.test(file.text.slice(type.pos, type.end));
    const visit = (node: any): boolean =>
      ts.isInterfaceDeclaration(node)
        ? (node.heritageClauses ?? []).some((clause: any) => clause.types.some((type: any) => !intl(type) && checker.getTypeAtLocation(type).flags & 1 /* any */))
        : (ts.forEachChild(node, visit) ?? false);
    if (visit(file)) found.add(file.fileName.slice(1));
  }
  return found;
}

/** Packages without those imports of the extension that lead to such a file; undefined if none does. */
function whole({ files, links }: Packages, open: Set<string>): Packages | undefined {
  if (!open.size) return undefined;
  const leads = (root: string) => {
    const seen = new Set([root]);
    for (const file of seen) for (const to of Object.values(links[file] ?? {})) seen.add(to);
    return [...seen].some((file) => open.has(file));
  };
  const kept = Object.entries(links[""] ?? {}).filter(([, to]) => !leads(to));
  return kept.length < Object.keys(links[""] ?? {}).length ? { files, links: { ...links, "": Object.fromEntries(kept) } } : undefined;
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
      run: ({ files, entry, env, packages }: any) => check(files, entry, env, packages),
    },
  },
});
