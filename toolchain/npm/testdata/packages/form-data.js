// package: form-data@4.0.6
// input: {"v": "x"}
// output: [{"content-type":"multipart/form-data; boundary=b"},"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\ndata\r\n--b--\r\n"]
import { extension } from "stile";
import FormData from "form-data";

export default extension({
  tools: {
    call: {
      description: "Calls form-data.",
      run: async (input) => {
        const form = new FormData();
        form.setBoundary("b");
        form.append("a", input.v);
        form.append("f", Buffer.from("data"), { filename: "f.txt" });
        return [form.getHeaders(), form.getBuffer().toString()];
      },
    },
  },
});
