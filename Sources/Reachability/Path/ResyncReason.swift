/// The reason for dumping the kernel's tables again. The raw values are those of `resync`
/// records (docs/command-line.md).
package enum ResyncReason: String, Hashable, Sendable, CaseIterable {
    case overrun
    case dumpInterrupted = "dump_interrupted"
    case resume
}
