/// A cache of expensive objects, shared by equal keys for as long as something else holds a strong reference to them.
package final class WeakCache<Key: Hashable & Sendable, Object: AnyObject & Sendable>: Sendable {
    // A class, not a struct, because of a fault of Swift 6.3.1. If the value is a struct of a weak reference and an
    // ObjectIdentifier, it treats a dictionary's absent value as present. It then crashes in swift_weakLoadStrong.
    // @unchecked: the weak reference is read from any thread, and never assigned again.
    private final class Entry: @unchecked Sendable {
        private(set) weak var object: Object?
        let identifier: ObjectIdentifier

        init(_ object: Object) {
            self.object = object
            identifier = ObjectIdentifier(object)
        }
    }

    private let entries = Locked<[Key: Entry]>([:])

    package init() {}

    /// Returns the object for an equal key, if it is still alive.
    package func object(for key: Key) -> Object? { entries.withLock { $0[key]?.object } }

    /// Adds an object, whose deinit must call ``remove(_:for:)``.
    ///
    /// - Returns: The object for the key: `object`, or another one if another thread was faster.
    package func insert(_ object: Object, for key: Key) -> Object {
        entries.withLock { entries in
            if let object = entries[key]?.object { return object }
            entries[key] = Entry(object)
            return object
        }
    }

    /// Removes the entry of an object that is being released, unless another object has replaced it. The entry's object is not
    /// read under the lock: releasing the last reference there would call this function again and deadlock.
    package func remove(_ identifier: ObjectIdentifier, for key: Key) {
        entries.withLock { if $0[key]?.identifier == identifier { $0[key] = nil } }
    }
}
