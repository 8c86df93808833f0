import { extension } from "stile";

const R = 6371;

export default extension({
  tools: {
    haversine: {
      description: "The distance between two points on Earth, in kilometres",
      input: {
        type: "object",
        properties: {
          lat1: { type: "number" }, lon1: { type: "number" }, lat2: { type: "number" }, lon2: { type: "number" },
          unit: { type: "string" },
        },
        required: ["lat1", "lon1", "lat2", "lon2"],
      },
      run: async ({ lat1, lon1, lat2, lon2, unit }, env) => {
        const { clock, store } = env;
        const d2r = Math.PI / 180, dLat = (lat2 - lat1) * d2r, dLon = (lon2 - lon1) * d2r;
        const a = Math.sin(dLat / 2) ** 2 + Math.cos(lat1 * d2r) * Math.cos(lat2 * d2r) * Math.sin(dLon / 2) ** 2;
        const km = 2 * R * Math.asin(Math.sqrt(a));
        if (unit) return { distance: km / Number(await store.get(unit)), at: clock.now() };
        return { km };
      },
    },
  },
});
