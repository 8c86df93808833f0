// Written by `stile types`: the bindings of "lookup.json".
import type { wit } from "stile";

declare module "stile" {
  interface Env {
    readonly crm: AcmeCrmContacts.Book;
  }

  /** The address book of a CRM. */
  namespace AcmeCrmContacts {
    interface Contact {
      name: string;
      email: string;
      phone?: string | undefined;
    }
    interface Book {
      /** The contact with this name. */
      lookup(name: string): Promise<Contact>;
      /** Names that contain the text, in order. */
      search(text: string): Promise<Array<string>>;
    }
  }
}
