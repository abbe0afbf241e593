export type { Registered } from "./checks.js";
export { Clock } from "./clock.js";
export { MemoryService } from "./memory.js";
export { Outbox, type Filters } from "./outbox.js";
export { testService, type ServiceOptions, type TestService } from "./service.js";
