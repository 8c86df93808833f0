const id = "@id@";

const radius = 6371;
const rad = Math.PI / 180;

function distance(from, to) {
  const dLat = (to.lat - from.lat) * rad;
  const dLon = (to.lon - from.lon) * rad;
  const a = Math.sin(dLat / 2) ** 2 + Math.cos(from.lat * rad) * Math.cos(to.lat * rad) * Math.sin(dLon / 2) ** 2;
  return 2 * radius * Math.asin(Math.sqrt(a));
}

function reverse(text) {
  return text.toUpperCase().split(" ").reverse().join(" ");
}

function tool(input) {
  const legs = [];
  for (let i = 1; i < input.points.length; i++) {
    legs.push(Math.round(distance(input.points[i - 1], input.points[i])));
  }
  const total = legs.reduce((sum, leg) => sum + leg, 0);
  return { id, n: input.n, legs, total, text: reverse(input.text) };
}
