// A question before something that cannot be undone. One is open at a time.

export type Question = { title: string; text: string; action: string; asksPassword?: boolean };

class Confirmation {
  question = $state<Question | null>(null);
  private resolve: (answer: string | null) => void = () => undefined;

  /** Asks. Returns the password that was asked for, or some text; null for a no. */
  ask(question: Question): Promise<string | null> {
    this.resolve(null);
    this.question = question;
    return new Promise((resolve) => (this.resolve = resolve));
  }

  answer(answer: string | null): void {
    this.question = null;
    this.resolve(answer);
    this.resolve = () => undefined;
  }
}

export const confirmation = new Confirmation();
