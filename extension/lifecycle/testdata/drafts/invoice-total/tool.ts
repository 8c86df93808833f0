import { extension } from "stile";

type Decimal = { units: bigint; scale: number };

function decimal(text: string): Decimal {
  const [whole = "0", fraction = ""] = text.replace(",", ".").split(".");
  return { units: BigInt(whole + fraction), scale: fraction.length };
}

// n / d for n >= 0, rounded half up
function divide(n: bigint, d: bigint): bigint {
  return (2n * n + d) / (2n * d);
}

function money(cents: bigint): number {
  return Number(cents) / 100;
}

const LINE = /^(\d+(?:[.,]\d+)?)\s*[x×]\s+(.+?)\s+@\s*(?:([A-Za-z]{3}|[€$£¥])\s*)?(\d+(?:[.,]\d+)?)(?:\s*([A-Za-z]{3}|[€$£¥]))?$/;
const SYMBOLS: Record<string, string> = { "€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY" };

export default extension({
  tools: {
    invoice_total: {
      description: "Parses an invoice of lines \"qty x name @ price\" and computes line totals, net, VAT and gross, rounded to cents (half up).",
      input: {
        type: "object",
        properties: {
          text: { type: "string", description: "The invoice: one line \"qty x name @ price\" per item; empty lines are skipped" },
          currency: { type: "string", pattern: "^[A-Z]{3}$", description: "ISO code, such as EUR" },
          vat_percent: { type: "number", minimum: 0, maximum: 100, description: "VAT in percent, such as 19" },
        },
        required: ["text", "currency", "vat_percent"],
      },
      annotations: { readOnly: true, idempotent: true },
      run: async ({ text, currency, vat_percent }) => {
        const lines: { qty: number; name: string; price: number; total: number }[] = [];
        let net = 0n;
        text.split(/\r?\n/).forEach((raw, i) => {
          const line = raw.trim();
          if (line === "") return;
          const m = LINE.exec(line);
          if (!m) throw new Error(`line ${i + 1} is not "qty x name @ price": ${line}`);
          const qtyText = m[1] ?? "";
          const name = m[2] ?? "";
          const priceText = m[4] ?? "";
          for (const sign of [m[3], m[5]]) {
            if (!sign) continue;
            const code = SYMBOLS[sign] ?? sign.toUpperCase();
            if (code !== currency) throw new Error(`line ${i + 1} is in ${code}, but the invoice is in ${currency}`);
          }
          const qty = decimal(qtyText);
          const price = decimal(priceText);
          const cents = divide(qty.units * price.units * 100n, 10n ** BigInt(qty.scale + price.scale));
          net += cents;
          lines.push({
            qty: Number(qtyText.replace(",", ".")),
            name,
            price: Number(priceText.replace(",", ".")),
            total: money(cents),
          });
        });
        if (lines.length === 0) throw new Error("the invoice has no lines");
        const vat = divide(net * BigInt(Math.round(vat_percent * 10000)), 1000000n);
        return { currency, vat_percent, lines, net: money(net), vat: money(vat), gross: money(net + vat) };
      },
    },
  },
});
