import type { PushState } from "./push.ts";

/** The texts of the button. */
export interface PushWords {
  readonly turnOn: string;
  readonly turnOff: string;
  readonly isOn: string;
  readonly failed: string;
  /** What stands in the way of push. */
  readonly hints: Readonly<Partial<Record<PushState, string>>>;
}

const EN: PushWords = {
  turnOn: "Turn on notifications",
  turnOff: "Turn off notifications",
  isOn: "This browser shows notifications.",
  failed: "That didn’t work. Try again.",
  hints: {
    install: "On an iPhone or iPad, tap Share, then Add to Home Screen. Open the app from there to turn on notifications.",
    update: "Notifications need iOS 16.4 or later. Update this device in Settings.",
    blocked: "This browser blocks notifications from this site. Allow them in its settings for the site. Private windows have none.",
    unsupported: "This browser can’t show notifications.",
  },
};

const PT: PushWords = {
  turnOn: "Ativar notificações",
  turnOff: "Desativar notificações",
  isOn: "Este navegador mostra notificações.",
  failed: "Não resultou. Tente de novo.",
  hints: {
    install: "No iPhone ou iPad, toque em Partilhar e em Adicionar ao ecrã principal. Abra a app a partir daí para ativar as notificações.",
    update: "As notificações precisam do iOS 16.4 ou posterior. Atualize este dispositivo em Definições.",
    blocked: "Este navegador bloqueia as notificações deste site. Permita-as nas definições do site. As janelas privadas não as têm.",
    unsupported: "Este navegador não mostra notificações.",
  },
};

/** Return the words of a language, English for an unknown one, with the app's own in their place. */
export function wordsFor(locale: string, own: Partial<PushWords> | undefined): PushWords {
  return { ...(locale.toLowerCase().startsWith("pt") ? PT : EN), ...own };
}
