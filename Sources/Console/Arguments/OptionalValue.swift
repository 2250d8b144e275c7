/// An option whose value may be omitted, as in `--connect [SOCKET]`. The argument parser knows options with a value only.
package enum OptionalValue {
    /// Returns the arguments with an empty value after an option that has none: at the end, before another option, or before an
    /// argument without a slash if the command has operands. Without operands, each argument is a value.
    package static func complete(_ arguments: [String], option: String, hasOperands: Bool) -> [String] {
        guard let place = arguments.firstIndex(of: option) else { return arguments }
        let next = place + 1 < arguments.count ? arguments[place + 1] : "-"
        guard next.hasPrefix("-") || hasOperands && !next.contains("/") else { return arguments }
        return arguments[...place] + [""] + arguments[(place + 1)...]
    }
}
