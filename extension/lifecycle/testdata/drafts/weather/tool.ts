import { extension } from "stile";

interface Answer { list: { date: string; temp: number }[] }

export default extension({
  tools: {
    forecast: {
      description: "Forecast for a city: the temperature of each day, and the warmest one",
      input: {
        type: "object",
        properties: { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 10 } },
        required: ["city"],
      },
      annotations: { readOnly: true, openWorld: true },
      run: async ({ city, days = 3 }) => {
        const url = new URL("https://api.weather.example/v1/forecast");
        url.searchParams.set("city", city);
        url.searchParams.set("days", String(days));
        const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
        if (response.status === 404) throw new Error(`there is no such city: ${city}`);
        if (!response.ok) throw new Error(`the weather service answered ${response.status}`);
        const { list } = (await response.json()) as Answer;
        return {
          city,
          warmest: Math.max(...list.map((entry) => entry.temp)),
          days: list.map((entry) => ({ day: entry.date, celsius: entry.temp })),
        };
      },
    },
  },
});
