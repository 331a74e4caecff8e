"""What a sweep leaves on disk, and what its user does: opened, grown, recorded, compared, and made again."""
