/** The texts of the elements. `{n}` and `{subject}` stand for a count and a notification's subject. */
export interface Words {
  readonly title: string;
  readonly bell: string;
  readonly bellWithCount: string;
  readonly unread: string;
  readonly readAll: string;
  readonly markRead: string;
  readonly markUnread: string;
  readonly archive: string;
  readonly archived: string;
  readonly unarchive: string;
  readonly unsnooze: string;
  readonly more: string;
  readonly snooze: string;
  readonly snoozeHours: string;
  readonly snoozeTomorrow: string;
  readonly snoozeWeek: string;
  readonly snoozeOwn: string;
  readonly snoozeUntil: string;
  readonly snoozed: string;
  readonly undo: string;
  readonly loadMore: string;
  readonly loading: string;
  readonly empty: string;
  readonly emptyHint: string;
  /** By the view's name in the API. */
  readonly views: Readonly<Record<string, string>>;
  readonly emptyViews: Readonly<Record<string, string>>;
  readonly until: string;
  readonly offline: string;
  readonly failed: string;
  readonly retry: string;
  readonly arrived: string;
  readonly untitled: string;
  readonly preferences: string;
  readonly preferencesFailed: string;
  readonly topic: string;
  readonly locked: string;
  readonly quietHours: string;
  readonly quietHint: string;
  readonly from: string;
  readonly to: string;
  readonly saved: string;
  readonly notSaved: string;
  /** By the channel's name in the API. */
  readonly channels: Readonly<Record<string, string>>;
  /** By the category's name in the API. */
  readonly categories: Readonly<Record<string, string>>;
}

const EN: Words = {
  title: "Notifications",
  bell: "Notifications",
  bellWithCount: "Notifications, {n} new",
  unread: "unread",
  readAll: "Mark all as read",
  markRead: "Mark as read: {subject}",
  markUnread: "Mark as unread: {subject}",
  archive: "Archive: {subject}",
  archived: "Archived",
  unarchive: "Move to inbox: {subject}",
  unsnooze: "Move to inbox now: {subject}",
  more: "More actions: {subject}",
  snooze: "Snooze: {subject}",
  snoozeHours: "In 3 hours",
  snoozeTomorrow: "Tomorrow",
  snoozeWeek: "Next week",
  snoozeOwn: "Day and time",
  snoozeUntil: "Snooze",
  snoozed: "Snoozed until {time}",
  undo: "Undo",
  loadMore: "Load more",
  loading: "Loading notifications",
  empty: "You’re all caught up",
  emptyHint: "New notifications appear here.",
  views: { inbox: "Inbox", unread: "Unread", snoozed: "Snoozed", archived: "Archived" },
  emptyViews: { unread: "Nothing is unread", snoozed: "Nothing is snoozed", archived: "Nothing is archived" },
  until: "Until {time}",
  offline: "You’re offline. Changes are sent when you’re back.",
  failed: "Notifications couldn’t be loaded.",
  retry: "Try again",
  arrived: "New notification: {subject}",
  untitled: "Notification",
  preferences: "Notification preferences",
  preferencesFailed: "Preferences couldn’t be loaded.",
  topic: "Topic",
  locked: "Always on",
  quietHours: "Quiet hours",
  quietHint: "Only urgent notifications, such as login codes, are sent.",
  from: "From",
  to: "To",
  saved: "Saved",
  notSaved: "Not saved. Try again.",
  channels: { email: "Email", push: "Push", whatsapp: "WhatsApp", in_app: "In-app" },
  categories: { transactional: "Your account and orders", marketing: "News and offers", alert: "Alerts" },
};

const PT: Words = {
  title: "Notificações",
  bell: "Notificações",
  bellWithCount: "Notificações, {n} novas",
  unread: "não lidas",
  readAll: "Marcar todas como lidas",
  markRead: "Marcar como lida: {subject}",
  markUnread: "Marcar como não lida: {subject}",
  archive: "Arquivar: {subject}",
  archived: "Arquivada",
  unarchive: "Mover para a caixa de entrada: {subject}",
  unsnooze: "Mover já para a caixa de entrada: {subject}",
  more: "Mais ações: {subject}",
  snooze: "Adiar: {subject}",
  snoozeHours: "Daqui a 3 horas",
  snoozeTomorrow: "Amanhã",
  snoozeWeek: "Na próxima semana",
  snoozeOwn: "Dia e hora",
  snoozeUntil: "Adiar",
  snoozed: "Adiada até {time}",
  undo: "Anular",
  loadMore: "Carregar mais",
  loading: "A carregar notificações",
  empty: "Está tudo em dia",
  emptyHint: "As novas notificações aparecem aqui.",
  views: { inbox: "Entrada", unread: "Não lidas", snoozed: "Adiadas", archived: "Arquivadas" },
  emptyViews: { unread: "Nada por ler", snoozed: "Nada adiado", archived: "Nada arquivado" },
  until: "Até {time}",
  offline: "Está sem ligação. As alterações são enviadas quando voltar.",
  failed: "Não foi possível carregar as notificações.",
  retry: "Tentar de novo",
  arrived: "Nova notificação: {subject}",
  untitled: "Notificação",
  preferences: "Preferências de notificações",
  preferencesFailed: "Não foi possível carregar as preferências.",
  topic: "Assunto",
  locked: "Sempre ativa",
  quietHours: "Horas de silêncio",
  quietHint: "Só são enviadas notificações urgentes, como códigos de acesso.",
  from: "Das",
  to: "Às",
  saved: "Guardado",
  notSaved: "Não foi guardado. Tente de novo.",
  channels: { email: "Email", push: "Push", whatsapp: "WhatsApp", in_app: "Na app" },
  categories: { transactional: "A sua conta e encomendas", marketing: "Novidades e ofertas", alert: "Alertas" },
};

/** Return the words of a language, English for an unknown one, with the app's own in their place. */
export function wordsFor(locale: string, own: Partial<Words> | undefined): Words {
  return { ...(locale.toLowerCase().startsWith("pt") ? PT : EN), ...own };
}

export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
