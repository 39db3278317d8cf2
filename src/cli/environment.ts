/** The variables of a command; nothing below `cli` and `main` reads them by itself. */
export type Environment = Readonly<Record<string, string | undefined>>
