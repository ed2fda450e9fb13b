// The personas that answer, and those that people play.

import { personas as api } from "./api";
import type { Persona } from "./types";

class PersonaList {
  items = $state<Persona[]>([]);

  get answering(): Persona[] {
    return this.items.filter((persona) => !persona.is_user);
  }

  async load(): Promise<void> {
    this.items = (await api.list()).items;
  }

  nameOf(id: string): string {
    return this.items.find((persona) => persona.id === id)?.name ?? id;
  }
}

export const personaList = new PersonaList();
