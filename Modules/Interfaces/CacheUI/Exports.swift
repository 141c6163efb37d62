// A view needs a manager, its options and a processor, so one import provides all of them.
@_exported public import Etagere
