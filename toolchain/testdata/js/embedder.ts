// bindings: crm
// `crm` is of the interface acme:crm/contacts in contacts.wit: an interface that the prelude knows nothing about.
import { equal, ok, rejects } from "./assert";

export default async function (_: unknown, { crm }: any): Promise<void> {
  const id = await crm.add({ name: "Ada", email: undefined, kind: "person", tags: { vip: true, muted: false } });
  equal(typeof id, "bigint");
  equal(await crm.find("Ada"), { name: "Ada", email: undefined, kind: "person", tags: { vip: true, muted: false } });
  equal(await crm.find("Bob"), undefined);
  await rejects(crm.remove(99n), { name: "CapabilityError", code: "error", message: "no contact 99" });
  const group = await crm.group([id]);
  equal(await group.size(), 1);
  equal(await group.memberAt(0), { tag: "known", val: id });
  equal(await group.memberAt(7), { tag: "unknown" });
  await group.merge(await crm.group([id]));
  equal(await group.size(), 2, "an object of the interface is an argument");
  await group.subscribe();
  ok(!("drop" in group) && !("then" in group), "only the methods of the interface");
}
