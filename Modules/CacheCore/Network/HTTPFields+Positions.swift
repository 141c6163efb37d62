public import HTTPTypes

/// Access to fields by position. Iterating over `HTTPFields` copies each field, which retains three strings.
extension HTTPFields {
  /// Returns the positions of all lines of a field, in order.
  @inlinable
  package func positions(of name: HTTPField.Name) -> FieldPositions { FieldPositions(self, name.canonicalName) }

  /// Returns the first line of a field. It is the value that browsers use for most fields.
  @inlinable
  package func first(_ name: HTTPField.Name) -> HTTPField? {
    var positions = positions(of: name)
    return positions.next().map { self[$0] }
  }

  /// Returns the fields except those whose names, in lower case, match. It copies nothing if none does.
  @inlinable
  package func removing(_ matches: (String) -> Bool) -> HTTPFields {
    var left = self
    var removed = 0
    for position in (0..<count).reversed() where matches(self[position].name.canonicalName) {
      // Copies all fields at once. A removal from shared fields would copy them one by one.
      if removed == 0 { left.reserveCapacity(count) }
      removed += 1
      // Each removal moves the fields behind it. Moving all of them for each of many would take quadratic time.
      guard removed <= 8 else {
        left.removeAll { matches($0.name.canonicalName) }
        return left
      }
      left.removeElement(at: position)
    }
    return left
  }
}

extension RangeReplaceableCollection where Index == Int {
  /// Removes an element. Generic code calls the implementation that `HTTPTypes` has specialized. A direct call on `HTTPFields`
  /// would create generic metadata each time, and take five times as long.
  @inlinable
  mutating func removeElement(at position: Int) { removeSubrange(position..<position + 1) }
}

/// The positions of all lines of one field.
@usableFromInline
package struct FieldPositions: Sequence, IteratorProtocol {
  @usableFromInline let fields: HTTPFields
  @usableFromInline let name: String
  @usableFromInline var position = 0

  @inlinable
  init(_ fields: HTTPFields, _ name: String) { (self.fields, self.name) = (fields, name) }

  @inlinable
  package mutating func next() -> Int? {
    while position < fields.count {
      defer { position += 1 }
      let candidate = fields[position].name.canonicalName
      // Few names have the same length.
      if candidate.utf8.count == name.utf8.count, candidate == name { return position }
    }
    return nil
  }
}
