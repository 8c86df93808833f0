// An extension of ordinary size: it reads invoices, adds them up and reports what is odd about them.
import { extension } from "stile";

const build = "@id@";

interface Line {
  description: string;
  quantity: number;
  price: number; // of one, in cents
  discount?: number; // percent
}

interface Invoice {
  number: string;
  customer: string;
  date: string; // YYYY-MM-DD
  currency: string;
  lines: Line[];
}

interface Finding {
  invoice: string;
  severity: "note" | "warning" | "error";
  message: string;
}

type Totals = Map<string, { count: number; cents: number }>;

const currencies = new Map<string, { symbol: string; digits: number }>([
  ["EUR", { symbol: "€", digits: 2 }],
  ["USD", { symbol: "$", digits: 2 }],
  ["GBP", { symbol: "£", digits: 2 }],
  ["JPY", { symbol: "¥", digits: 0 }],
]);

class Money {
  constructor(
    readonly cents: number,
    readonly currency: string,
  ) {
    if (!Number.isSafeInteger(cents)) throw new RangeError(`${cents} is not a whole number of cents`);
  }

  plus(other: Money): Money {
    if (other.currency !== this.currency) throw new TypeError(`cannot add ${other.currency} to ${this.currency}`);
    return new Money(this.cents + other.cents, this.currency);
  }

  toString(): string {
    const { symbol, digits } = currencies.get(this.currency) ?? { symbol: this.currency + " ", digits: 2 };
    const sign = this.cents < 0 ? "-" : "";
    const whole = Math.floor(Math.abs(this.cents) / 10 ** digits).toString().replace(/\B(?=(\d{3})+$)/g, ",");
    const rest = digits ? "." + String(Math.abs(this.cents) % 10 ** digits).padStart(digits, "0") : "";
    return sign + symbol + whole + rest;
  }
}

function amount(line: Line): number {
  const full = Math.round(line.quantity * line.price);
  return full - Math.round((full * (line.discount ?? 0)) / 100);
}

function total(invoice: Invoice): Money {
  return invoice.lines.map((line) => new Money(amount(line), invoice.currency)).reduce((a, b) => a.plus(b), new Money(0, invoice.currency));
}

/** Days between two dates, by the civil calendar. */
function daysBetween(from: string, to: string): number {
  const day = (text: string) => {
    const [y, m, d] = text.split("-").map(Number);
    const shifted = m > 2 ? y : y - 1;
    const era = Math.floor(shifted / 400);
    const yearOfEra = shifted - era * 400;
    const dayOfYear = Math.floor((153 * (m > 2 ? m - 3 : m + 9) + 2) / 5) + d - 1;
    return era * 146097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  };
  return day(to) - day(from);
}

function* check(invoice: Invoice): Generator<Finding> {
  const finding = (severity: Finding["severity"], message: string) => ({ invoice: invoice.number, severity, message });
  if (!currencies.has(invoice.currency)) yield finding("warning", `unknown currency ${invoice.currency}`);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(invoice.date)) yield finding("error", `${invoice.date} is not a date`);
  if (!invoice.lines.length) yield finding("error", "no lines");
  for (const [index, line] of invoice.lines.entries()) {
    const at = `line ${index + 1} (${line.description})`;
    if (line.quantity <= 0) yield finding("warning", `${at}: quantity ${line.quantity}`);
    if (line.price < 0) yield finding("note", `${at}: a credit`);
    if ((line.discount ?? 0) > 50) yield finding("warning", `${at}: ${line.discount}% off`);
  }
}

function byCustomer(invoices: Invoice[]): Totals {
  const totals: Totals = new Map();
  for (const invoice of invoices) {
    const known = totals.get(invoice.customer) ?? { count: 0, cents: 0 };
    totals.set(invoice.customer, { count: known.count + 1, cents: known.cents + total(invoice).cents });
  }
  return totals;
}

const schema = {
  type: "object",
  properties: {
    today: { type: "string" },
    invoices: { type: "array", items: { type: "object", required: ["number", "customer", "date", "currency", "lines"] } },
  },
  required: ["invoices"],
};

export default extension({
  tools: {
    report: {
      description: "Totals of invoices by customer, and what is odd about them",
      input: schema,
      annotations: { readOnly: true },
      run: async ({ invoices, today }: { invoices: Invoice[]; today?: string }, env) => {
        const findings = invoices.flatMap((invoice) => [...check(invoice)]);
        const customers = [...byCustomer(invoices)]
          .sort(([, a], [, b]) => b.cents - a.cents)
          .map(([customer, { count, cents }]) => ({ customer, count, total: String(new Money(cents, invoices[0].currency)) }));
        const ages = today ? invoices.map((invoice) => daysBetween(invoice.date, today)) : [];
        if (today) await env.store.set("last-report", today);
        return { build, customers, findings, oldest: Math.max(0, ...ages) };
      },
    },
  },
});
