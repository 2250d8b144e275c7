/// The items of a list that fit, and how many there are besides: what is left out is counted, never cut off.
package struct CountedList {
    package var items: [String]
    package var separator: String
    /// At most so many items are listed.
    package var limit = Int.max
    /// The noun of one item, and of several.
    package var noun: (one: String, several: String)

    package init(_ items: [String], separator: String = " ", limit: Int = .max, noun: (one: String, several: String)) {
        (self.items, self.separator, self.limit, self.noun) = (items, separator, limit, noun)
    }

    /// The list in at most so many columns: `a b and 3 more`. `5 addresses` where not even one item fits beside the count; that, and a
    /// single item, may be longer than the columns.
    package func text(columns: Int = .max) -> String {
        var listed = min(items.count, limit)
        while listed > 0 {
            let text = text(listing: listed)
            if items.count == 1 || DisplayWidth.columns(text) <= columns { return text }
            listed -= 1
        }
        return items.isEmpty ? "" : "\(items.count) \(items.count == 1 ? noun.one : noun.several)"
    }

    private func text(listing count: Int) -> String {
        let text = items.prefix(count).joined(separator: separator)
        return count < items.count ? "\(text) and \(items.count - count) more" : text
    }
}
