// Written by `stile types`: the bindings of the manifest.
import type { wit } from "stile";

declare module "stile" {
  interface Env {
    readonly all: AcmeAllOfItTheLot.Thing;
    readonly "my-log": Log;
    readonly network: Http;
    readonly notes: Workspace;
    readonly odd: unknown;
    readonly "q\"uote": Kv;
    /** What a person configured: plain data. */
    readonly vars: {
      readonly team: string;
      readonly limit?: number;
    };
  }

  namespace AcmeAllOfItTheLot {
    /**
     * Ends here? *​/ no.
     * Second line.
     */
    interface Promise_ {
      default: boolean;
      ifAny?: number | undefined;
      both: { tag: "some"; val: string | undefined } | { tag: "none" };
      list: Array<Uint8Array>;
      pair: [bigint, number, string];
    }
    interface Array_ {
      one: boolean;
      twoThree: boolean;
    }
    type Colour = "red" | "blue-green";
    /** A choice. */
    type Choice =
      /** Nothing to say. */
      | { tag: "none" }
      | { tag: "some"; val: Promise_ }
      | { tag: "other"; val: { tag: "ok"; val: number } | { tag: "err"; val: string } }
      | { tag: "last"; val: { tag: "ok"; val?: undefined } | { tag: "err"; val?: undefined } };
    interface Thing {
      /** Makes no sense. */
      "new"(delete_: string, optional?: number | undefined, in_?: Colour | undefined): Promise<Thing>;
      middle(a: number | undefined, b: wit.Types.Denial): Promise<void>;
      merge(other: Thing, all: Array<Thing>): Promise<Array<Promise<void>>>;
      readyWhen(): Promise<void>;
      content(): Promise<wit.Blob.Blob | undefined>;
      flags(): Promise<Array_>;
      nothing(): Promise<void>;
    }
  }
}
