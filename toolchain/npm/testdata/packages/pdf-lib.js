// package: pdf-lib@1.17.1
// input: {"text": "Hello"}
// output: ["%PDF-",1,{"width":200,"height":100},27]
import { extension } from "stile";
import { PDFDocument, rgb, StandardFonts } from "pdf-lib";

export default extension({
  tools: {
    call: {
      description: "Calls pdf-lib.",
      run: async (input) => {
        const doc = await PDFDocument.create();
        const font = await doc.embedFont(StandardFonts.TimesRoman);
        const page = doc.addPage([200, 100]);
        page.drawText(input.text, { x: 5, y: 50, font, size: 12, color: rgb(0, 0.5, 0.7) });
        const bytes = await doc.save();
        const again = await PDFDocument.load(bytes);
        return [String.fromCharCode(...bytes.slice(0, 5)), again.getPageCount(), again.getPage(0).getSize(), Math.round(font.widthOfTextAtSize(input.text, 12))];
      },
    },
  },
});
