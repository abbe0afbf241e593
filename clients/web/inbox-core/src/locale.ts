/**
 * Return a locale that `Intl` takes: `pt-BR` for `pt_BR` or `pt_BR.UTF-8`, as servers write it in `<html lang>`.
 * Return the first of `candidates` that is one, otherwise English.
 */
export function normalizedLocale(...candidates: readonly (string | null | undefined)[]): string {
  for (const one of candidates) {
    try {
      const [found] = Intl.getCanonicalLocales((one ?? "").split(/[.@]/)[0]!.trim().replaceAll("_", "-"));
      if (found !== undefined) return found;
    } catch {
      // Not a language tag: the next candidate may be one.
    }
  }
  return "en";
}
