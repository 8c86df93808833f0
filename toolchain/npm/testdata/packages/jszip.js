// package: jszip@3.10.2
// input: {"text": "hello"}
// output: [["a/","a/b.txt"],"hello"]
import { extension } from "stile";
import JSZip from "jszip";

export default extension({
  tools: {
    call: {
      description: "Calls jszip.",
      run: async (input) => {
        const zip = new JSZip();
        zip.file("a/b.txt", input.text);
        const again = await JSZip.loadAsync(await zip.generateAsync({ type: "uint8array", compression: "DEFLATE" }));
        return [Object.keys(again.files), await again.file("a/b.txt").async("string")];
      },
    },
  },
});
