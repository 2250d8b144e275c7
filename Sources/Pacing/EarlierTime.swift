/// Returns the earlier of two times; `nil` means never. The minimum of a list would take an allocation and 400 instructions, and a
/// loop needs several minima before each wait.
package func earlier(_ one: Int64?, _ other: Int64?) -> Int64? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
}
