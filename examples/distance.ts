// Computes and does nothing else: it needs no capability.
import { extension } from "stile";

const place = {
  type: "object",
  properties: {
    latitude: { type: "number", minimum: -90, maximum: 90 },
    longitude: { type: "number", minimum: -180, maximum: 180 },
  },
  required: ["latitude", "longitude"],
} as const;

// The mean radius of the earth in kilometres.
const radius = 6371;

export default extension({
  tools: {
    distance: {
      description: "Distance between two places along the surface of the earth, in kilometres",
      input: { type: "object", properties: { from: place, to: place }, required: ["from", "to"], additionalProperties: false },
      output: { type: "object", properties: { kilometres: { type: "number" } }, required: ["kilometres"] },
      annotations: { readOnly: true, idempotent: true },
      run: ({ from, to }) => {
        const latitude = radians(to.latitude - from.latitude);
        const longitude = radians(to.longitude - from.longitude);
        const along =
          Math.sin(latitude / 2) ** 2 +
          Math.cos(radians(from.latitude)) * Math.cos(radians(to.latitude)) * Math.sin(longitude / 2) ** 2;
        return { kilometres: Math.round(2 * radius * Math.asin(Math.sqrt(along)) * 1000) / 1000 };
      },
    },
  },
});

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}
