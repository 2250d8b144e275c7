/// The reason for dumping the kernel's tables again. The raw values are those of records (contract, `resync`).
package enum ResyncReason: String, Hashable, Sendable, CaseIterable {
    case overrun
    case dumpInterrupted = "dump_interrupted"
    case resume
}
