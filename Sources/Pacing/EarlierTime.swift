/// Returns the earlier of two times; `nil` means never. A list of times with its `min()` takes an allocation and 400 instructions, and a
/// loop needs several of them before each wait.
package func earlier(_ one: Int64?, _ other: Int64?) -> Int64? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
}
