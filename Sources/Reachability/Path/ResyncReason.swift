/// Why the kernel was asked anew; the raw values are the contract's.
package enum ResyncReason: String, Hashable, Sendable, CaseIterable {
    case overrun
    case dumpInterrupted = "dump_interrupted"
    case resume
}
