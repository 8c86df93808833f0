// package: i18next@26.7.2
// input: {"name": "Ada"}
// output: ["Hallo Ada","Bye"]
import { extension } from "stile";
import i18next from "i18next";

export default extension({
  tools: {
    call: {
      description: "Calls i18next.",
      run: async (input) => {
        const i18n = i18next.createInstance();
        await i18n.init({ lng: "de", fallbackLng: "en", resources: { de: { translation: { hi: "Hallo {{name}}" } }, en: { translation: { bye: "Bye" } } } });
        return [i18n.t("hi", input), i18n.t("bye")];
      },
    },
  },
});
