const id = "@id@";

async function tool(input, files) {
  const was = await files.read("state");
  await files.write("state", String(input.n));
  return { id, n: input.n, was };
}
