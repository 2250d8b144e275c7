/// A text that lists as many items as fit, and counts the others. Items are never truncated.
package struct CountedList {
    package var items: [String]
    package var separator: String
    /// The maximum number of listed items.
    package var limit = Int.max
    /// The noun for one item and for several.
    package var noun: (one: String, several: String)

    package init(_ items: [String], separator: String = " ", limit: Int = .max, noun: (one: String, several: String)) {
        (self.items, self.separator, self.limit, self.noun) = (items, separator, limit, noun)
    }

    /// Returns the list in at most `columns` columns: `a b and 3 more`, or `5 addresses` if not even one item fits beside the
    /// count. That form, and a single item, may be longer than `columns`.
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
