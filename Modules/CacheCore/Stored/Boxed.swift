/// A value behind one reference: as cheap to hand on as an object, and as separate from its copies as any value.
///
/// What passes through many asynchronous calls is kept in it: each of them holds room for its arguments, its result and its error, and a large value is copied by every one.
struct Boxed<Content: Sendable>: Sendable {
  /// Changed only while nobody else has a reference to it.
  private final class Box: @unchecked Sendable {
    var content: Content

    init(_ content: Content) { self.content = content }
  }

  private var box: Box

  init(_ content: Content) { box = Box(content) }

  var content: Content {
    _read { yield box.content }
    _modify {
      if !isKnownUniquelyReferenced(&box) { box = Box(box.content) }
      yield &box.content
    }
  }

  /// Whether both are one object still: then they are equal.
  func isSame(as other: Self) -> Bool { box === other.box }
}
