// package: date-fns@4.4.0
// input: {"to": "2024-02-01"}
// output: ["1. März 2024",23]
import { extension } from "stile";
import { addDays, differenceInBusinessDays, format, parseISO } from "date-fns";
import { de } from "date-fns/locale/de";

export default extension({
  tools: {
    call: {
      description: "Calls date-fns.",
      run: async (input) => {
        return [format(addDays(new Date(2024, 1, 28), 2), "d. MMMM yyyy", { locale: de }), differenceInBusinessDays(parseISO(input.to), parseISO("2024-01-01"))];
      },
    },
  },
});
