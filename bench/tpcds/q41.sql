SELECT DISTINCT i_product_name
FROM item AS i1
WHERE i_manufact_id BETWEEN 738 AND 778
    AND (
        SELECT count(*) AS cnt
        FROM item
        WHERE (i_manufact = i1.i_manufact AND i_category = 'Women'
                AND (i_color = 'powder' OR i_color = 'khaki') AND i_size IN ('medium', 'large'))
            OR (i_manufact = i1.i_manufact AND i_category = 'Men'
                AND (i_color = 'floral' OR i_color = 'deep') AND i_size IN ('petite', 'small'))
    ) > 0
ORDER BY i_product_name
LIMIT 100
