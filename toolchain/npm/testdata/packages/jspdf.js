// package: jspdf@4.2.1
// input: {"t": "Hi"}
// output: true
import { extension } from "stile";
import { jsPDF } from "jspdf";

export default extension({
  tools: {
    call: {
      description: "Calls jspdf.",
      run: async (input) => {
        const d = new jsPDF();
        d.setCreationDate("D:20240101000000+00'00'");
        d.setFileId("0".repeat(32));
        d.text(input.t, 10, 10);
        return d.output().length > 1000;
      },
    },
  },
});
