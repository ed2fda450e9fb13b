// Dark or light: as the system says, or as the person chose on this device.

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "azera-theme";

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === value) ?? "system";
}

class ThemeChoice {
  current = $state<Theme>(stored());

  constructor() {
    this.show();
  }

  choose(theme: Theme): void {
    this.current = theme;
    localStorage.setItem(KEY, theme);
    this.show();
  }

  private show(): void {
    document.documentElement.dataset.theme = this.current;
  }
}

export const theme = new ThemeChoice();
