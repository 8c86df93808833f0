// package: ipaddr.js@2.5.0
// input: {"ip": "2001:db8::1"}
// output: ["ipv6","reserved","2001:db8:0:0:0:0:0:1",true]
import { extension } from "stile";
import ipaddr from "ipaddr.js";

export default extension({
  tools: {
    call: {
      description: "Calls ipaddr.js.",
      run: async (input) => {
        const a = ipaddr.parse(input.ip);
        return [a.kind(), a.range(), a.toNormalizedString(), ipaddr.parse("10.1.2.3").match(ipaddr.parseCIDR("10.0.0.0/8"))];
      },
    },
  },
});
